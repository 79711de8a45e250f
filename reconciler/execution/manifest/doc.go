// Package manifest reads what Works ask for.
//
// In go Works; out come their manifests, each with what its object is known by, and
// what a Work had asked for once and asks for no more. It keeps in memory what it has
// read, once per generation, and starts empty. It talks to nobody.
package manifest
