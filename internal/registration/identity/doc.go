// Package identity says who the agents of clusters in pull mode are: the names of
// their users, groups and roles, and which certificate an agent may ask for.
//
// In go names and certificate requests; out come clusters, or what is wrong in one
// line. The package decides by values alone: it asks no server and reads no clock.
package identity
