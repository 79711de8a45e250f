// Package api is the floor that every other room stands on: what people write
// and what the loops write down for each other.
//
// Its packages hold Go types, their generated deep copies, their well-known
// names and the generated CustomResourceDefinitions. The kinds of the groups
// *.karmada.io are wire-compatible with Karmada, the kinds of *.flotilla.io are
// ours. Nothing in here decides, calls a server or imports a client.
package api
