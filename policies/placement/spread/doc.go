// Package spread selects among the clusters that fit those that satisfy the
// spread constraints of a placement.
//
// In go sorted candidates and the constraints; out come the selected
// candidates, or why no selection satisfies them. A constraint groups clusters
// by a field or a label and bounds how many groups are used; a cluster in
// several zones is in the group of each. How many replicas each cluster runs is
// decided elsewhere.
package spread
