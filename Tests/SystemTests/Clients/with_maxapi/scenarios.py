"""Rows that scenarios of the stock client prove already."""

from __future__ import annotations

import channels
import chatting
import coming_back
import comments
import own_things
import reading
import second_factor
import signing_in

from with_maxapi.device import scenario_cell

scenario_cell("Register a new phone", signing_in.registration)
scenario_cell("Log in by code", signing_in.login_by_code, signing_in.wrong_code, short=True)
scenario_cell("Log in again with the stored token", signing_in.dead_token, coming_back.relogin)
scenario_cell("Set, change and remove the password", second_factor.second_factor)
scenario_cell("Log in by a QR code", second_factor.qr_login)
scenario_cell("List devices and close the others", signing_in.sessions)
scenario_cell("Log out", signing_in.logout)
scenario_cell("Come back after the server restarts", coming_back.reconnect, short=True, last=True)

scenario_cell("Send and receive text", chatting.dialog, short=True)
scenario_cell("Notes to oneself", chatting.saved_messages)
scenario_cell("Format text", chatting.formatting)
scenario_cell("Format text after an emoji", chatting.formatting)
scenario_cell("Answer a message", chatting.reply)
scenario_cell("Forward a message", chatting.forward)
scenario_cell("Be told of edits", chatting.edit)
scenario_cell("Delete for everybody, and be told", chatting.delete_for_all)
scenario_cell("Delete for oneself alone", chatting.delete_for_me)
scenario_cell("Send a message later", own_things.scheduled)
scenario_cell("React to a message", own_things.reactions, short=True)
scenario_cell("Vote in a poll", own_things.poll)
scenario_cell("Comment on posts", comments.comments)

scenario_cell("Page through the history", reading.history, short=True)
scenario_cell("List chats", coming_back.chat_list)
scenario_cell("Move the read mark", reading.read_marks)
scenario_cell("Be told who types", reading.typing)
scenario_cell("Be told who comes and goes", reading.presence)

scenario_cell("Make a group", chatting.group_of_three, short=True)
scenario_cell("Change title, description and settings of a group", chatting.group_life)
scenario_cell("Make a channel and post in it", channels.channel)
scenario_cell("Accept a join request", channels.join_requests)
scenario_cell("Look at users by id", reading.contacts)
scenario_cell("Keep chats in folders", own_things.folders)
