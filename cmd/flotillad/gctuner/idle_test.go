package gctuner

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRests: a program that is at work keeps what it has, and one at rest gives back what is
// worth it.
func TestRests(t *testing.T) {
	for name, tc := range map[string]struct {
		is   heap // after one that had allocated 1,000 MiB
		want bool
	}{
		"at work, with much garbage":                    {heap{allocated: 1100 * mib, live: 100 * mib, objects: 500 * mib}, false},
		"at rest, with much garbage":                    {heap{allocated: 1001 * mib, live: 100 * mib, objects: 500 * mib}, true},
		"at rest, with much that is free":               {heap{allocated: 1001 * mib, live: 100 * mib, objects: 100 * mib, free: 300 * mib}, true},
		"at rest, with little":                          {heap{allocated: 1001 * mib, live: 100 * mib, objects: 150 * mib, free: 20 * mib}, false},
		"at rest, with less than the last one had left": {heap{allocated: 1000 * mib, live: 100 * mib, objects: 90 * mib}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := releaser{last: heap{allocated: 1000 * mib}, polls: restfulPolls, since: busyPolls}
			if got := r.rests(tc.is); got != tc.want {
				t.Errorf("rests = %t, want %t", got, tc.want)
			}
			if r.last != tc.is {
				t.Error("the next look does not begin where this one ended")
			}
		})
	}
}

// TestWhenMemoryIsGivenBack: at the third look in a row that finds a program at rest, and
// not again for ten, whatever it takes in between.
func TestWhenMemoryIsGivenBack(t *testing.T) {
	r := releaser{since: busyPolls}
	is := heap{live: 100 * mib, objects: 500 * mib}
	var got []int
	for tick := range 80 {
		if tick%8 == 0 { // a burst
			is.allocated += 400 * mib
		}
		if r.rests(is) {
			got = append(got, tick)
		}
	}
	if diff := cmp.Diff([]int{3, 13, 23, 35, 45, 55, 67, 77}, got); diff != "" {
		t.Errorf("the looks at which memory is given back (-want +got):\n%s", diff)
	}
}
