// Package backoff slows down the correction of objects that somebody keeps changing,
// so that two writers who disagree do not keep a member busy.
//
// In go the corrections of a Work's objects; out come how long the next one waits,
// whether an event about it is due, and how long Works that failed wait. It keeps
// that in memory and starts empty. It corrects nothing itself.
package backoff
