// Package spread selects among the clusters that fit those that satisfy the
// spread constraints of a placement.
//
// In go sorted candidates and the constraints; out come the selected
// candidates, or why no selection satisfies them. How many replicas each of
// them runs is decided elsewhere.
package spread
