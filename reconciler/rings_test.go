package reconciler_test

import (
	"fmt"
	"strings"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/sources/artifact"
)

// TestObjectsThatMoveInARing has three Kustomizations of a source hand objects over in a ring, with loops that die after
// ever more writes: no member loses one for a moment, each has its new owner, and nobody waits until time is up.
func TestObjectsThatMoveInARing(t *testing.T) {
	m := withoutLoops(t)
	for name, tc := range map[string]struct {
		wait bool
		on   map[string]string // what each depends on
	}{
		"nobody waits for another one":               {},
		"each waits for health":                      {wait: true},
		"each depends on the one that gives to it":   {on: map[string]string{"two": "one", "three": "two"}},
		"each depends on the one that takes from it": {on: map[string]string{"one": "two", "two": "three"}},
		"each depends on who takes, and waits, too":  {wait: true, on: map[string]string{"one": "two", "two": "three"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRing(m.in(t), tc.wait, tc.on)
			r.start(-1)
			defer func() { r.check(r.stop()) }()
			r.turn(0)
			r.stand(ring...)
			before := r.objects()
			for turn := 1; turn <= 4; turn++ {
				if turn > 1 {
					r.check(r.stop())
					r.start(5 * (turn - 1))
				}
				r.turn(turn)
				r.stand(ring...)
				r.everywhere(revisionOf(turn)) // a revision that the next one overtakes need not reach a Work
				if diff := cmp.Diff(before, r.objects()); diff != "" {
					t.Errorf("the objects of members after turn %d (-before +after):\n%s", turn, diff)
				}
				if diff := cmp.Diff(owners(turn), r.owners()); diff != "" {
					t.Errorf("who has what after turn %d (-want +got):\n%s", turn, diff)
				}
			}
			if diff := cmp.Diff(sequences(revisionsUntil(4)), r.seen()); diff != "" && len(tc.on) == 0 {
				t.Errorf("what Works held, one after the other (-want +got):\n%s", diff)
			}
		})
	}
}

// ring are the Kustomizations of a ring.
var ring = []string{"one", "two", "three"}

// owners says who has which object after some turns.
func owners(turns int) map[string]string {
	out := map[string]string{}
	for i := range ring {
		out[fmt.Sprintf("t%d", i)] = ring[(i+turns)%len(ring)]
	}
	return out
}

// revisionOf is what the Kustomizations of the ring hold together after some turns.
func revisionOf(turns int) revision {
	out := revision{templates: map[string]string{}, all: []string{from, to}}
	for name := range owners(turns) {
		out.templates[name] = fmt.Sprintf("r%d", turns)
	}
	return out
}

func revisionsUntil(turns int) []revision {
	var out []revision
	for turn := range turns + 1 {
		out = append(out, revisionOf(turn))
	}
	return out
}

// rings is a control plane whose source has a ring, and a policy for all that is in it.
type rings struct{ *switches }

func newRing(m *moves, wait bool, on map[string]string) *rings {
	r := &rings{newSource(m)}
	r.distinct = true
	r.create("policies", "./policies")
	for _, name := range ring {
		r.createAs(name, "./"+name, func(spec *kustomizev1.KustomizationSpec) {
			if spec.Wait = wait; on[name] != "" {
				spec.DependsOn = []kustomizev1.DependencyReference{{Name: on[name]}}
			}
		})
	}
	return r
}

// turn has the source fetch the ring after some turns.
func (r *rings) turn(turns int) {
	r.Helper()
	files := artifact.Files{}
	for name, manifest := range revisionOf(turns).objects(r.namespace) {
		folder := "policies"
		if owner := owners(turns)[name]; owner != "" {
			folder = owner
		}
		files[folder+"/"+name+".yaml"] = artifact.File{Data: []byte(strings.TrimPrefix(manifest, "---\n"))}
	}
	r.push(files)
}

// objects are those of the members, by cluster and name.
func (r *rings) objects() map[string]types.UID {
	r.Helper()
	out := map[string]types.UID{}
	for cluster, edge := range r.edges {
		for name := range owners(0) {
			obj := &corev1.ConfigMap{}
			r.eventually(name+" is in "+cluster, func() error {
				r.revive()
				return edge.Get(r.Context(), client.ObjectKey{Namespace: r.namespace, Name: name}, obj)
			})
			out[cluster+"/"+name] = obj.UID
		}
	}
	return out
}

// owners says which Kustomization each object is labelled with.
func (r *rings) owners() map[string]string {
	r.Helper()
	out := map[string]string{}
	for name := range owners(0) {
		obj := &corev1.ConfigMap{}
		r.check(r.hub.Hub.Get(r.Context(), client.ObjectKey{Namespace: r.namespace, Name: name}, obj))
		owner, _ := inventory.OwnerOf(obj)
		out[name] = owner.Name
	}
	return out
}
