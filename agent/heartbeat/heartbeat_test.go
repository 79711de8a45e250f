package heartbeat

import (
	"context"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/flotilla-io/flotilla/agent/kinds"
	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Every beat counts: two that are missed, one after the other, are half of what the
// hub waits for.
func TestABeatIsNotMissed(t *testing.T) {
	key := client.ObjectKey{Namespace: workv1alpha2.NamespaceKarmadaCluster, Name: "east"}
	cases := map[string]func(context.Context, client.Client, *coordinationv1.Lease) error{
		"nothing happens": func(context.Context, client.Client, *coordinationv1.Lease) error { return nil },
		"somebody else beats": func(ctx context.Context, hub client.Client, l *coordinationv1.Lease) error {
			l.Labels = map[string]string{"after": l.ResourceVersion}
			return hub.Update(ctx, l)
		},
		"the Lease was removed": func(ctx context.Context, hub client.Client, l *coordinationv1.Lease) error { return hub.Delete(ctx, l) },
	}
	notes := []string{"first", "", "last"}
	silent := []bool{false, true, false}
	for name, meanwhile := range cases {
		t.Run(name, func(t *testing.T) {
			hub := fake.NewClientBuilder().WithScheme(kinds.Scheme()).Build()
			clock := clocktesting.NewFakeClock(time.Unix(1000, 0))
			note, now := "", 0
			renewer := New(hub, Options{Cluster: "east", Clock: clock, Note: func() map[string]string { return map[string]string{"note": note} },
				Answers: func(context.Context) bool { return !silent[now] }})
			cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "east", UID: "u"}}
			lease := &coordinationv1.Lease{}
			for beat := range 3 {
				clock.Step(10 * time.Second)
				note, now = notes[beat], beat
				if err := renewer.attempt(t.Context(), cluster); err != nil {
					t.Fatalf("beat %d: %v", beat, err)
				}
				if err := hub.Get(t.Context(), key, lease); err != nil {
					t.Fatal(err)
				}
				if !lease.Spec.RenewTime.Time.Equal(clock.Now()) {
					t.Errorf("beat %d: renewed at %s, want %s", beat, lease.Spec.RenewTime, clock.Now())
				}
				if says := lease.Annotations[clusterv1alpha1.SilentAnnotation] == lease.Spec.RenewTime.UTC().Format(metav1.RFC3339Micro); says != silent[beat] {
					t.Errorf("beat %d: says that the member is silent: %t", beat, says)
				}
				if began := time.Unix(1000, 0); !lease.Spec.AcquireTime.Time.Equal(began) {
					t.Errorf("beat %d: held since %s, want %s", beat, lease.Spec.AcquireTime, began)
				}
				if got, there := lease.Annotations["note"]; got != note || there != (note != "") {
					t.Errorf("beat %d: the note is %q, %t", beat, got, there)
				}
				if err := meanwhile(t.Context(), hub, lease); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
