// Package clouds says whether this program was built with what is for single clouds (-tags clouds).
//
// It takes nothing in; out comes a constant. It has no code of a cloud itself: packages that have are told by their options.
package clouds
