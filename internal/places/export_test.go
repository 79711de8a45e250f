package places

import (
	"maps"
	"slices"
)

// Waiting is how many wait for a place of a tenant.
func Waiting(p *Places, of string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.tenants[of].waiting)
}

// Tenants are those that are known.
func Tenants(p *Places) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.tenants))
}
