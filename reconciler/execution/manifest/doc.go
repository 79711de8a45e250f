// Package manifest parses the manifests of Works.
//
// In go Works; out come their manifests, each with the identity of its object, and
// those that a Work had once and has no more. It keeps in memory what it has
// parsed, once per generation, and starts empty. It calls no API.
package manifest
