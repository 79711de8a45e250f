// Package customization tries out what is known about kinds of resources: it
// runs one operation on objects, checks scripts, and edits them.
//
// In go customizations and objects as they are in files or on the control
// plane, and out come answers with who gave them, differences, and findings with
// file and line. It asks no webhook and writes nothing.
package customization
