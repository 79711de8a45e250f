// Package customization tries out the interpretation of kinds of resources: it runs single
// operations on objects, and checks and edits scripts.
//
// In go customizations and objects from files or the control plane; out come answers with
// their source, differences, and findings with file and line. The package calls no webhook
// and writes nothing.
package customization
