/// The most common emoji, with their names.
enum Emoji {
    /// - Returns: The emoji whose names begin with `start`. The most used emoji come first.
    static func names(beginningWith start: String) -> [(name: String, emoji: String)] {
        let start = start.lowercased()
        return table.filter { $0.name.hasPrefix(start) }
    }

    /// Returns the emoji with a name; nil for an unknown name.
    static func named(_ name: String) -> String? {
        table.first { $0.name == name.lowercased() }?.emoji
    }

    /// The emoji offered as reactions.
    static let all: [(name: String, emoji: String)] = table

    private static let table: [(name: String, emoji: String)] = text.split(separator: "\n")
        .flatMap { $0.split(separator: "  ") }
        .compactMap { entry in
            let parts = entry.split(separator: " ")
            return parts.count == 2 ? (String(parts[1]), String(parts[0])) : nil
        }

    private static let text = """
        👍 thumbsup  ❤️ heart  😂 joy  🔥 fire  🎉 party  😮 wow  😢 sad  🙏 please  👎 thumbsdown  👏 clap
        😀 grin  😃 smiley  😄 smile  😁 beam  😆 laughing  😅 sweat_smile  🤣 rofl  🙂 slight_smile
        🙃 upside_down  😉 wink  😊 blush  😇 innocent  🥰 loving  😍 heart_eyes  🤩 star_struck
        😘 kiss  😋 yum  😛 tongue  😜 crazy  🤪 zany  🤑 money_face  🤗 hug  🤭 giggle  🤫 shush
        🤔 thinking  🤐 zipped  🤨 eyebrow  😐 neutral  😑 expressionless  😶 silent  😏 smirk
        😒 unamused  🙄 rolling_eyes  😬 grimace  🤥 lying  😌 relieved  😔 pensive  😪 sleepy
        🤤 drooling  😴 sleeping  😷 mask  🤒 ill  🤕 hurt  🤢 nauseated  🤮 vomiting  🤧 sneezing
        🥵 hot  🥶 cold  🥴 woozy  😵 dizzy  🤯 mind_blown  🤠 cowboy  🥳 partying  😎 cool  🤓 nerd
        🧐 monocle  😕 confused  😟 worried  ☹️ frown  😯 hushed  😲 astonished  😳 flushed
        🥺 pleading  😦 frowning  😧 anguished  😨 fearful  😰 anxious  😥 disappointed_relieved
        😭 sob  😱 scream  😖 confounded  😣 persevere  😞 disappointed  😓 sweat  😩 weary  😫 tired
        🥱 yawn  😤 triumph  😡 angry  😠 cross  🤬 cursing  😈 devil  💀 skull  💩 poop  🤡 clown
        👻 ghost  👽 alien  🤖 robot  😺 cat_smile  🙈 see_no_evil  🙉 hear_no_evil  🙊 speak_no_evil
        💋 lips  💔 broken_heart  💕 two_hearts  💯 hundred  💥 boom  💫 sparkle_star  💦 drops
        💤 zzz  👋 wave  🤚 back_of_hand  ✋ hand  🖖 vulcan  👌 ok  🤏 pinch  ✌️ victory
        🤞 fingers_crossed  🤟 love_you  🤘 rock  🤙 call_me  👈 point_left  👉 point_right
        👆 point_up  👇 point_down  ✊ fist  👊 punch  🙌 hooray  👐 open_hands  🤝 handshake
        💪 muscle  🧠 brain  👀 eyes  👶 baby  🙅 no_good  🙆 ok_person  🤦 facepalm  🤷 shrug
        🐶 dog  🐱 cat  🐭 mouse  🐰 rabbit  🦊 fox  🐻 bear  🐼 panda  🐯 tiger  🦁 lion  🐮 cow
        🐷 pig  🐸 frog  🐵 monkey  🐔 chicken  🐧 penguin  🐦 bird  🦄 unicorn  🐝 bee  🦋 butterfly
        🐢 turtle  🐍 snake  🐙 octopus  🐟 fish  🐳 whale  🌵 cactus  🎄 christmas_tree  🌲 tree
        🌹 rose  🌻 sunflower  🌸 blossom  🍀 clover  🍁 leaf  🌍 earth  🌙 moon  ⭐ star  🌈 rainbow
        ☀️ sun  ⛅ cloudy  🌧️ rain  ⚡ lightning  ❄️ snow  ⛄ snowman  💧 drop  🌊 ocean  🍎 apple
        🍌 banana  🍓 strawberry  🍉 watermelon  🍒 cherries  🍋 lemon  🥑 avocado  🍞 bread
        🧀 cheese  🍔 burger  🍟 fries  🍕 pizza  🌮 taco  🍣 sushi  🍜 noodles  🍰 cake
        🎂 birthday  🍫 chocolate  🍬 candy  🍿 popcorn  ☕ coffee  🍵 tea  🍺 beer  🍻 cheers
        🍷 wine  🥂 toast  🍾 champagne  ⚽ football  🏀 basketball  🎾 tennis  🏆 trophy  🥇 gold
        🎮 game  🎲 dice  🎯 dart  🎸 guitar  🎵 note  🎶 notes  🎤 microphone  🎧 headphones
        🎬 film  📷 camera  🎨 art  🚗 car  🚕 taxi  🚌 bus  🚲 bicycle  🚂 train  ✈️ plane
        🚀 rocket  ⛵ boat  🏠 house  🏢 office  🏖️ beach  ⏰ alarm  ⌛ hourglass  📱 phone
        💻 laptop  ⌨️ keyboard  🖨️ printer  💡 idea  🔦 torch  📚 books  📖 book  ✏️ pencil
        📝 memo  📌 pin  📎 paperclip  ✂️ scissors  🔒 lock  🔑 key  🔨 hammer  🔧 wrench  ⚙️ gear
        🧪 test_tube  💊 pill  🎁 gift  🎈 balloon  🎊 confetti  ✉️ envelope  📦 package  📅 calendar
        📈 chart_up  📉 chart_down  🔍 search  💰 money  💳 card  ⚠️ warning  🚫 forbidden  ✅ check
        ❌ cross_mark  ❓ question  ❗ exclamation  ➕ plus  ➖ minus  ♻️ recycle  🔴 red  🟢 green
        🔵 blue  🟡 yellow  ⚫ black  ⚪ white  🏁 finish  🚩 flag  🏳️ white_flag
        """
}
