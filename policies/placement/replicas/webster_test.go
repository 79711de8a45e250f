package replicas_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flotilla-io/flotilla/policies/placement/replicas"
)

func TestWebster(t *testing.T) {
	cases := map[string]struct {
		total   int32
		weights []int64
		order   replicas.Order
		want    []int32
		nobody  bool
	}{
		"nothing to give":                                         {0, []int64{1, 2}, replicas.Ascending, []int32{0, 0}, false},
		"nobody to give to":                                       {5, []int64{0, -1}, replicas.Ascending, []int32{0, 0}, true},
		"weights of two to one":                                   {6, []int64{2, 1}, replicas.Ascending, []int32{4, 2}, false},
		"a remainder goes to the larger weight":                   {4, []int64{2, 1}, replicas.Ascending, []int32{3, 1}, false},
		"equal weights, remainder to the first name":              {4, []int64{1, 1, 1}, replicas.Ascending, []int32{2, 1, 1}, false},
		"equal weights, remainder to the last name":               {4, []int64{1, 1, 1}, replicas.Descending, []int32{1, 1, 2}, false},
		"equal weights go to who has less":                        {2, []int64{3, 1}, replicas.Ascending, []int32{1, 1}, false},
		"a tie of weights with a count is won by the lower count": {3, []int64{3, 1}, replicas.Ascending, []int32{2, 1}, false},
		"weights of zero get nothing":                             {10, []int64{0, 1, 0}, replicas.Ascending, []int32{0, 10, 0}, false},
		"weights beyond reason do not overflow":                   {3, []int64{math.MaxInt64, math.MaxInt64, math.MaxInt64}, replicas.Ascending, []int32{1, 1, 1}, false},
		"all replicas there can be, in no time":                   {math.MaxInt32, []int64{1, 1}, replicas.Ascending, []int32{1<<30 - 0, 1<<30 - 1}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			shares := sharesOf(tc.weights)
			if ok := replicas.Webster(tc.total, shares, tc.order); ok == tc.nobody {
				t.Errorf("gave to somebody = %v", ok)
			}
			if diff := cmp.Diff(tc.want, countsOf(shares)); diff != "" {
				t.Errorf("counts (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOrderOf(t *testing.T) {
	// FNV-32a of "a" is 0xe40c292c, of "b" 0xe70c2de5.
	got := map[string]replicas.Order{"": replicas.OrderOf(""), "a": replicas.OrderOf("a"), "b": replicas.OrderOf("b")}
	want := map[string]replicas.Order{"": replicas.Ascending, "a": replicas.Ascending, "b": replicas.Descending}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("orders (-want +got):\n%s", diff)
	}
}

// FuzzWebster compares the division with the rule itself, one replica at a time.
func FuzzWebster(f *testing.F) {
	f.Add(uint16(10), int64(1), int64(2), int64(3), int64(0), false)
	f.Add(uint16(999), int64(7), int64(7), int64(7), int64(7), true)
	f.Add(uint16(5000), int64(1), int64(1000000), int64(3), int64(1), false)
	f.Fuzz(func(t *testing.T, total uint16, a, b, c, d int64, descending bool) {
		const most = 1 << 40 // weights above are scaled down, on purpose
		weights := []int64{a % most, b % most, c % most, d % most}
		order := replicas.Order(descending)
		shares := sharesOf(weights)
		replicas.Webster(int32(total), shares, order)
		if diff := cmp.Diff(plain(int64(total), weights, order), countsOf(shares)); diff != "" {
			t.Errorf("Webster(%d, %v, %v) (-plain +fast):\n%s", total, weights, order, diff)
		}
	})
}

// plain gives one at a time, as the rule is written.
func plain(total int64, weights []int64, order replicas.Order) []int32 {
	counts := make([]int32, len(weights))
	for range total {
		best := -1
		for i, w := range weights {
			if w > 0 && (best < 0 || beats(w, counts[i], weights[best], counts[best], order)) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		counts[best]++
	}
	return counts
}

// beats reports whether the later of two shares is served before the earlier one.
func beats(w int64, n int32, bestWeight int64, bestCount int32, order replicas.Order) bool {
	mine, theirs := w*(2*int64(bestCount)+1), bestWeight*(2*int64(n)+1)
	if mine != theirs {
		return mine > theirs
	}
	if n != bestCount {
		return n < bestCount
	}
	return bool(order)
}

func sharesOf(weights []int64) []replicas.Share {
	shares := make([]replicas.Share, len(weights))
	for i, w := range weights {
		shares[i] = replicas.Share{Name: string(rune('a' + i)), Weight: w}
	}
	return shares
}

func countsOf(shares []replicas.Share) []int32 {
	out := make([]int32, len(shares))
	for i := range shares {
		out[i] = shares[i].Count
	}
	return out
}
