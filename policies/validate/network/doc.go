// Package network judges MultiClusterIngresses and MultiClusterServices.
//
// In go typed objects; out come errors that refuse them and warnings that do
// not. It changes nothing.
package network
