package transitions

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// suspected returns a lost cluster on which the suspicion stands with a message.
func suspected(name, message string) *clusterv1alpha1.Cluster {
	out := clusterIn(name, clusterv1alpha1.Push, metav1.ConditionFalse, time.Minute)
	meta.SetStatusCondition(&out.Status.Conditions, metav1.Condition{
		Type: clusterv1alpha1.ClusterConditionMassFailureSuspected, Status: metav1.ConditionTrue, Reason: clusterv1alpha1.MassFailureReason, Message: message,
	})
	return out
}

// TestMassFailure: that many clusters were lost at once, so that nothing is moved off them, is one line for all of
// them, with what to do; and so is that it is over.
func TestMassFailure(t *testing.T) {
	lost := func(name string) *clusterv1alpha1.Cluster {
		return clusterIn(name, clusterv1alpha1.Push, metav1.ConditionFalse, time.Minute)
	}
	const two, three = "2 of 3 clusters were lost at once: edge, m2: nothing is moved off them", "3 of 3 clusters were lost at once: east, edge, m2: nothing is moved off them"
	cases := map[string]struct {
		happens func(w *watcher)
		want    []string
	}{
		"two are lost": {
			happens: func(w *watcher) {
				w.cluster(lost("m2"), suspected("m2", two+". If m2 is lost: say so"))
				w.cluster(lost("edge"), suspected("edge", two+". If edge is lost: say so"))
			},
			want: []string{"3s failover: " + two + ". If edge is lost: say so"},
		},
		"the number of those that are lost is the last one": {
			happens: func(w *watcher) {
				w.cluster(lost("m2"), suspected("m2", two))
				time.Sleep(time.Second)
				w.cluster(suspected("m2", two), suspected("m2", three))
			},
			want: []string{"3s failover: " + three},
		},
		"another one is lost later": {
			happens: func(w *watcher) {
				w.cluster(lost("m2"), suspected("m2", two))
				time.Sleep(time.Minute)
				w.cluster(suspected("m2", two), suspected("m2", three))
				w.cluster(lost("east"), suspected("east", three))
			},
			want: []string{"3s failover: " + two, "1m3s failover: " + three},
		},
		"it is over once it stands on no cluster": {
			happens: func(w *watcher) {
				w.cluster(lost("m2"), suspected("m2", two))
				w.cluster(lost("edge"), suspected("edge", two))
				time.Sleep(time.Minute)
				w.cluster(suspected("m2", two), lost("m2"))
				time.Sleep(time.Minute)
				w.cluster(suspected("edge", two), lost("edge"))
			},
			want: []string{"3s failover: " + two, "2m0s failover: " + over},
		},
		"the last one is removed": {
			happens: func(w *watcher) {
				w.cluster(lost("m2"), suspected("m2", two))
				time.Sleep(time.Minute)
				w.gone(suspected("m2", two))
			},
			want: []string{"3s failover: " + two, "1m0s failover: " + over},
		},
		"it stood when this process began to look": {
			happens: func(w *watcher) { w.cluster(nil, suspected("m2", two)) },
			want:    []string{"3s failover: " + two},
		},
		"what is over at once is no news": {
			happens: func(w *watcher) {
				w.cluster(nil, suspected("m2", two))
				w.cluster(suspected("m2", two), lost("m2"))
			},
		},
		"a cluster without it is removed": {happens: func(w *watcher) { w.cluster(nil, lost("m2")); w.gone(lost("m2")) }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				var got []string
				w := newWatcher(nil, Options{Screen: func(at time.Time, line string) { got = append(got, fmt.Sprint(at.Sub(began), " ", line)) }})
				tc.happens(w)
				time.Sleep(2 * longest)
				synctest.Wait()
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("the screen (-want +got):\n%s", diff)
				}
			})
		})
	}
}
