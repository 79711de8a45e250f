// Package lua judges the Lua scripts of interpreter customizations.
//
// In go the source of a script and the name of the function that is called; out
// comes what is wrong with it. It runs no script, opens no file and keeps
// nothing.
package lua
