// Package author says who applied a template, and who stands for them in members.
//
// In go names and groups of users of the hub; out come the text that annotations
// carry, and the user and the groups that a member is sent. The names there are of
// their own: a user or service account of a member that is called as one of the
// hub's has nothing of its rights, nor the other way round. The package knows no
// roles: what authors may do in members is package access's.
package author
