// Package interpreter knows what resources of each kind mean: how many replicas
// they ask for, what a member owns of them, whether they are healthy, and how
// the statuses of many members become one.
//
// In go objects as the hub or a member holds them; out come values and changed
// copies. Objects that come in are never changed. Rules come in layers: for each
// operation, the first layer that has a rule for the kind answers, and its error
// is final.
package interpreter
