package profile

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// mostCompared is how many rows of a kind are compared with each other.
const mostCompared = 256

// More reports whether something may fit by a profile that did not by the one before. It
// may say so although nothing does.
func More(was, is *Profile) bool {
	if !slices.Equal(was.Resources, is.Resources) || !slices.Equal(was.Omitted, is.Omitted) || was.QuotasOmitted != is.QuotasOmitted {
		return true
	}
	before := map[string][][]int64{}
	for i := range was.Kinds {
		k := &was.Kinds[i]
		before[k.key()] = k.Rows
	}
	for i := range is.Kinds {
		if k := &is.Kinds[i]; moreRows(before[k.key()], k.Rows) {
			return true
		}
	}
	return moreQuota(leastOf(was.Quotas), leastOf(is.Quotas))
}

// key is the same for equal kinds.
func (k *Kind) key() string { return textOf(Kind{Labels: k.Labels, Taints: k.Taints}) }

// moreRows reports whether rows of a kind have more of anything, or more nodes that have as
// much as one of them.
func moreRows(was, is [][]int64) bool {
	switch {
	case len(is) == 0:
		return false
	case len(was) == 0, len(is) > mostCompared, len(was) > mostCompared:
		return true
	}
	for i := 1; i < len(is[0]); i++ {
		if sumOf(is, i) > sumOf(was, i) {
			return true
		}
	}
	return slices.ContainsFunc(is, func(row []int64) bool { return atLeast(is, row) > atLeast(was, row) })
}

// sumOf returns what all nodes have free of a resource, as far as a number goes.
func sumOf(rows [][]int64, at int) float64 {
	var sum float64
	for _, row := range rows {
		sum += float64(row[0]) * float64(row[at])
	}
	return sum
}

// atLeast returns how many nodes have as much free as the row says, or more.
func atLeast(rows [][]int64, least []int64) int64 {
	var sum int64
	for _, row := range rows {
		enough := true
		for i := 1; i < len(row); i++ {
			enough = enough && row[i] >= least[i]
		}
		if enough {
			sum += row[0]
		}
	}
	return sum
}

// limit is what a quota of a namespace is about.
type limit struct {
	namespace, scopes string
	resource          corev1.ResourceName
}

func leastOf(quotas []Quota) map[limit]int64 {
	out := map[limit]int64{}
	for i := range quotas {
		q := &quotas[i]
		scopes := textOf(q.Scopes)
		for _, namespace := range q.Namespaces {
			for resource, n := range q.Free {
				of := limit{namespace, scopes, resource}
				if least, ok := out[of]; !ok || n < least {
					out[of] = n
				}
			}
		}
	}
	return out
}

func moreQuota(was, is map[limit]int64) bool {
	for of, n := range was {
		if now, ok := is[of]; !ok || now > n {
			return true
		}
	}
	return false
}
