package live_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla-io/flotilla/internal/members"
	"github.com/flotilla-io/flotilla/reconciler/execution/live"
	"github.com/flotilla-io/flotilla/reconciler/execution/manifest"
)

var (
	stable = schema.GroupVersionKind{Group: "sea.io", Version: "v1", Kind: "Ship"}
	beta   = stable.GroupKind().WithVersion("v1beta1")
	ship   = types.NamespacedName{Namespace: "shop", Name: "web"}

	errAway = errors.New("the member is away")
)

// fleetMember is a member that serves versions of the kind Ship. Its watch may be behind what it has.
type fleetMember struct {
	serves  map[schema.GroupVersionKind]bool
	watched map[string]bool // what the watch shows, by name
	has     map[string]bool
	gets    error // instead of any answer to Get
	serving error // instead of any answer to Served
	asked   []string
}

func (m *fleetMember) Read(gvk schema.GroupVersionKind, key types.NamespacedName) (*members.Observed, members.Presence) {
	if m.watched[key.Name] {
		return members.MetadataOf(object(gvk, key, "watched")), members.Present
	}
	return nil, members.Absent
}

func (m *fleetMember) Get(_ context.Context, gvk schema.GroupVersionKind, key types.NamespacedName) (*unstructured.Unstructured, error) {
	m.asked = append(m.asked, gvk.Version+" "+key.Name)
	switch {
	case m.gets != nil:
		return nil, m.gets
	case !m.serves[gvk]:
		return nil, fmt.Errorf("%w: %s", members.ErrNotServed, gvk)
	case !m.has[key.Name]:
		return nil, apierrors.NewNotFound(schema.GroupResource{Group: gvk.Group, Resource: "ships"}, key.Name)
	}
	return object(gvk, key, "member"), nil
}

func (m *fleetMember) Served(_ context.Context, gvk schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	if m.serving != nil {
		return gvk, m.serving
	}
	for served := range m.serves {
		if served.GroupKind() == gvk.GroupKind() {
			return served, nil
		}
	}
	return gvk, fmt.Errorf("%w: %s", members.ErrNotServed, gvk)
}

func object(gvk schema.GroupVersionKind, key types.NamespacedName, uid types.UID) *unstructured.Unstructured {
	out := &unstructured.Unstructured{}
	out.SetGroupVersionKind(gvk)
	out.SetNamespace(key.Namespace)
	out.SetName(key.Name)
	out.SetUID(uid)
	return out
}

// TestFind: the watch is believed where it shows an object, and never where it shows none.
func TestFind(t *testing.T) {
	for name, c := range map[string]struct {
		member  fleetMember
		uid     types.UID // of what is found; empty for nothing
		version string
		err     error
		asked   []string
	}{
		"what the watch shows is not asked for": {
			member: fleetMember{watched: map[string]bool{"web": true}}, uid: "watched", version: "v1",
		},
		"a watch that is behind hides nothing": {
			member: fleetMember{serves: map[schema.GroupVersionKind]bool{stable: true}, has: map[string]bool{"web": true}},
			uid:    "member", version: "v1", asked: []string{"v1 web"},
		},
		"there is none": {
			member: fleetMember{serves: map[schema.GroupVersionKind]bool{stable: true}}, version: "v1", asked: []string{"v1 web"},
		},
		"the member serves another version of the kind, with the same objects": {
			member: fleetMember{serves: map[schema.GroupVersionKind]bool{beta: true}, has: map[string]bool{"web": true}},
			uid:    "member", version: "v1beta1", asked: []string{"v1 web", "v1beta1 web"},
		},
		"there is none in the other version either": {
			member: fleetMember{serves: map[schema.GroupVersionKind]bool{beta: true}}, version: "v1beta1", asked: []string{"v1 web", "v1beta1 web"},
		},
		"a kind that is served in no version has no objects": {
			version: "v1", asked: []string{"v1 web"},
		},
		"a member that is away has not said that there is none": {
			member: fleetMember{gets: errAway}, version: "v1", err: errAway, asked: []string{"v1 web"},
		},
		"one that does not answer which versions it serves has not said so either": {
			member: fleetMember{serving: errAway}, version: "v1", err: errAway, asked: []string{"v1 web"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			found, kind, err := live.Find(t.Context(), &c.member, &manifest.Manifest{GVK: stable, Key: ship})
			if !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Fatalf("error = %v, want %v", err, c.err)
			}
			var uid types.UID
			if found != nil {
				uid = found.UID
			}
			if uid != c.uid || kind != stable.GroupKind().WithVersion(c.version) {
				t.Errorf("found %q in %s, want %q in %s", uid, kind.Version, c.uid, c.version)
			}
			if diff := cmp.Diff(c.asked, c.member.asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}

// TestAny: one object is enough, and one that could not be asked for is not taken for absent.
func TestAny(t *testing.T) {
	fleet := []manifest.Manifest{
		{Err: errors.New("manifest 0 does not parse")},
		{GVK: stable, Key: types.NamespacedName{Namespace: "shop", Name: "api"}},
		{GVK: stable, Key: ship},
		{GVK: stable, Key: types.NamespacedName{Namespace: "shop", Name: "late"}},
	}
	for name, c := range map[string]struct {
		member fleetMember
		any    bool
		err    error
		asked  []string
	}{
		"none is there": {
			member: fleetMember{serves: map[schema.GroupVersionKind]bool{stable: true}}, asked: []string{"v1 api", "v1 web", "v1 late"},
		},
		"after one is found no other is asked for": {
			member: fleetMember{serves: map[schema.GroupVersionKind]bool{stable: true}, has: map[string]bool{"web": true, "late": true}},
			any:    true, asked: []string{"v1 api", "v1 web"},
		},
		"the member is away": {
			member: fleetMember{gets: errAway}, err: errAway, asked: []string{"v1 api"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := live.Any(t.Context(), &c.member, fleet)
			if got != c.any || !errors.Is(err, c.err) || (err == nil) != (c.err == nil) {
				t.Errorf("any = %t, %v, want %t, %v", got, err, c.any, c.err)
			}
			if diff := cmp.Diff(c.asked, c.member.asked); diff != "" {
				t.Errorf("asked for (-want +got):\n%s", diff)
			}
		})
	}
}
