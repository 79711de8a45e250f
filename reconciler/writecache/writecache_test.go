package writecache_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/writecache"
)

var key = client.ObjectKey{Namespace: "shop", Name: "web"}

func at(version string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, ResourceVersion: version}}
}

func TestLatest(t *testing.T) {
	cases := map[string]struct {
		wrote  string
		after  time.Duration
		cached string
		want   string
	}{
		"nothing written: the cache decides":          {cached: "5", want: "5"},
		"nothing written, nothing cached":             {},
		"a create that the cache has not seen":        {wrote: "7", want: "7"},
		"an update that the cache has not seen":       {wrote: "12", cached: "9", want: "12"},
		"the cache has caught up":                     {wrote: "7", cached: "7", want: "7"},
		"the cache is ahead":                          {wrote: "7", cached: "11", want: "11"},
		"a write unseen for long is taken for undone": {wrote: "7", after: time.Minute, want: ""},
		"versions that cannot be compared":            {wrote: "7", cached: "abc", want: "abc"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			clock := clocktesting.NewFakeClock(time.Unix(0, 0))
			c := writecache.New[*corev1.ConfigMap](clock)
			if tc.wrote != "" {
				c.Wrote(at(tc.wrote))
			}
			clock.Step(tc.after)
			got := ""
			if obj, found := c.Latest(key, at(tc.cached), tc.cached != ""); found {
				got = obj.ResourceVersion
			}
			if got != tc.want {
				t.Errorf("Latest = %q, want %q", got, tc.want)
			}
		})
	}
}

// TestTheLastWriteHasNoVersionOfItsOwn: a write by which an object ends is answered with the version before it. Who looks again
// before the cache shows the end must not take the object for one that is still held.
func TestTheLastWriteHasNoVersionOfItsOwn(t *testing.T) {
	blocked, released := at("7"), at("7")
	blocked.Finalizers = []string{"shop.example/hold"}
	c := writecache.New[*corev1.ConfigMap](clocktesting.NewFakeClock(time.Unix(0, 0)))
	c.Wrote(released)
	for range 2 {
		if obj, found := c.Latest(key, blocked, true); !found || len(obj.Finalizers) > 0 {
			t.Errorf("latest (found: %t): %v", found, obj.Finalizers)
		}
	}
	c.Observed(at("8"))
	if obj, found := c.Latest(key, blocked, true); !found || len(obj.Finalizers) == 0 {
		t.Errorf("after another version was seen (found: %t): %v", found, obj)
	}
}

func TestObserved(t *testing.T) {
	cases := map[string]struct {
		wrote, seen string
		own         bool
		unseen      int
	}{
		"the version written":                 {wrote: "7", seen: "7", own: true},
		"a version before the one written":    {wrote: "7", seen: "6", unseen: 1},
		"a version after the one written":     {wrote: "7", seen: "8"},
		"a version of which nothing is known": {seen: "8"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := writecache.New[*corev1.ConfigMap](clocktesting.NewFakeClock(time.Unix(0, 0)))
			if tc.wrote != "" {
				c.Wrote(at(tc.wrote))
			}
			own := c.Observed(at(tc.seen))
			unseen := len(c.Unseen(func(*corev1.ConfigMap) bool { return true }))
			if diff := cmp.Diff([]any{tc.own, tc.unseen}, []any{own, unseen}); diff != "" {
				t.Errorf("own, unseen (-want +got):\n%s", diff)
			}
		})
	}
}

func TestGoneEndsTheWait(t *testing.T) {
	c := writecache.New[*corev1.ConfigMap](clocktesting.NewFakeClock(time.Unix(0, 0)))
	c.Wrote(at("7"))
	c.Gone(at("8"))
	if _, found := c.Latest(key, nil, false); found {
		t.Error("an object seen deleted is still returned")
	}
}

// TestAnAnswerThatComesAfterTheEnd: others may end an object before the answer to the last write to it is recorded, and
// the cache may show that first. Nothing would tell a loop that waits for the end.
func TestAnAnswerThatComesAfterTheEnd(t *testing.T) {
	of := func(uid types.UID, version string) *corev1.ConfigMap {
		obj := at(version)
		obj.UID = uid
		return obj
	}
	cases := map[string]struct {
		do   func(c *writecache.Cache[*corev1.ConfigMap])
		want string
	}{
		"the end, then the answer to a write before it": {func(c *writecache.Cache[*corev1.ConfigMap]) {
			c.Gone(of("a", "8"))
			c.Wrote(of("a", "7"))
		}, ""},
		"the end, then a new object of the name": {func(c *writecache.Cache[*corev1.ConfigMap]) {
			c.Gone(of("a", "8"))
			c.Wrote(of("b", "9"))
		}, "9"},
		"a new object of the name, then the end of the former": {func(c *writecache.Cache[*corev1.ConfigMap]) {
			c.Wrote(of("b", "9"))
			c.Gone(of("a", "8"))
		}, "9"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := writecache.New[*corev1.ConfigMap](clocktesting.NewFakeClock(time.Unix(0, 0)))
			tc.do(c)
			got := ""
			if obj, found := c.Latest(key, nil, false); found {
				got = obj.ResourceVersion
			}
			if got != tc.want {
				t.Errorf("Latest = %q, want %q", got, tc.want)
			}
		})
	}
}

func TestOldEntriesAreSwept(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	c := writecache.New[*corev1.ConfigMap](clock)
	c.Wrote(at("7"))
	clock.Step(time.Minute)
	other := at("8")
	other.Name = "api"
	c.Wrote(other)
	got := c.Unseen(func(*corev1.ConfigMap) bool { return true })
	if diff := cmp.Diff([]*corev1.ConfigMap{other}, got); diff != "" {
		t.Errorf("unseen (-want +got):\n%s", diff)
	}
}

func TestLeaving(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(0, 0))
	c := writecache.New[*corev1.ConfigMap](clock)
	obj, again := at("7"), at("9")
	obj.UID, again.UID = "u-1", "u-2"
	marked := at("7")
	marked.DeletionTimestamp = &metav1.Time{Time: clock.Now()}
	c.Deleted(obj)
	got := []bool{c.Leaving(obj), c.Leaving(again), c.Leaving(marked), c.Ended(marked)}
	clock.Step(time.Minute)
	got = append(got, c.Leaving(obj))
	if diff := cmp.Diff([]bool{true, false, true, false, false}, got); diff != "" {
		t.Errorf("deleted, made anew, marked, marked but not by us, long ago (-want +got):\n%s", diff)
	}
}
