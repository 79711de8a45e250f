package apply

import (
	"context"
	"testing"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/reconciler/apply/kustomizations"
	"github.com/flotilla-io/flotilla/reconciler/inventory"
	"github.com/flotilla-io/flotilla/reconciler/revisiongate"
)

// begun counts how often a switch began.
type begun int

func (b *begun) Begin(client.ObjectKey, revisiongate.Extent)              { *b++ }
func (b *begun) End(context.Context, client.ObjectKey, []inventory.Entry) {}
func (b *begun) Join(client.ObjectKey, []client.ObjectKey)                {}
func (b *begun) Unseen(context.Context, []revisiongate.Version) ([]revisiongate.Version, error) {
	return nil, nil
}

// A switch is announced once, before its first policy or override is written. That also holds for a run that has no
// definitions to write, as an earlier run has written them.
func TestASwitchIsAnnouncedOnceKindsAreServed(t *testing.T) {
	ks := &kustomizev1.Kustomization{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"}}
	hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(ks).WithStatusSubresource(ks).Build()
	var begins begun
	w := switcher{switches: &begins, store: kustomizations.New(hub, hub, clock.RealClock{}), clock: clock.RealClock{}}
	s := &state{ks: ks, owner: client.ObjectKeyFromObject(ks)}
	s.switchover.needed = true
	for range 2 {
		if err := w.beforePolicies(s)(t.Context()); err != nil || begins != 1 {
			t.Errorf("it began %d times, want once: %v", begins, err)
		}
	}
}
