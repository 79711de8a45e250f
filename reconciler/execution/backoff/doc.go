// Package backoff slows the correction of objects down that somebody keeps changing,
// so that two who disagree do not keep a member busy.
//
// In go the corrections of a Work's objects; out comes how long the next one waits,
// and whether an Event about it is due, and how long Works that failed wait. It keeps
// that in memory and starts empty.
// It corrects nothing itself.
package backoff
