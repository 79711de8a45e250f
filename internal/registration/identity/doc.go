// Package identity defines who the agents of clusters in pull mode are: the names
// of their users, groups and roles, and which certificate an agent may request.
//
// In go names and certificate requests; out come clusters, or one-line errors.
// The package decides by values alone: it sends no request and reads no clock.
package identity
