package nodes

import "math"

// Most returns how many units fit by all plugins; MaxInt32 where none knows a bound.
func Most(x *Index, ask *Ask, plugins ...Plugin) int32 {
	most := int64(math.MaxInt64)
	for _, p := range plugins {
		most = min(most, p.Most(x, ask))
	}
	return bounded(most)
}
