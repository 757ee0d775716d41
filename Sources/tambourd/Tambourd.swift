@main struct Tambourd { static func main() {} }
