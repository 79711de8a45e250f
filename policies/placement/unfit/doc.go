// Package unfit says why no cluster fits.
//
// In go the refusals of plugins, one for each cluster; out comes an error that counts
// them in few words, and a cause that stays the same while only numbers change. It asks
// no plugin.
package unfit
