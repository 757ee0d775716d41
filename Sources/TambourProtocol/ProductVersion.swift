/// The version of Tambour that `tambour --version` and `tambourd --version` print.
package let productVersion = "0.1.0"
