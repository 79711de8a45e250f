package join_test

import (
	"context"
	"errors"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/api/scheme"
	"github.com/flotilla-io/flotilla/internal/join"
)

// TestReadySaysWhatTheControlPlaneFound checks that the error has what the
// control plane last found, also when the last request fails because the time is
// over, and when no request was answered.
func TestReadySaysWhatTheControlPlaneFound(t *testing.T) {
	cluster := &clusterv1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "edge"}}
	cluster.Status.Conditions = []metav1.Condition{{Type: clusterv1alpha1.ClusterConditionReady, Status: metav1.ConditionFalse, Message: "its kube-system is slow"}}
	limited := errors.New("rate: Wait(n=1) would exceed context deadline")
	for name, tc := range map[string]struct {
		answers int // how many requests are answered
		absent  bool
		want    string
	}{
		"one that no agent has reported for":      {1 << 30, true, "cluster edge is not ready after 250ms: its agent has not reported; see that it runs beside the cluster and reaches the control plane, then: flotilla status"},
		"one that is answered":                    {1 << 30, false, "cluster edge is not ready after 250ms: its kube-system is slow; flotilla describe cluster edge says more"},
		"one that is answered no more at the end": {1, false, "cluster edge is not ready after 250ms: its kube-system is slow; flotilla describe cluster edge says more"},
		"one that is never answered":              {0, false, "cluster edge is not ready after 250ms: rate: Wait(n=1) would exceed context deadline; flotilla describe cluster edge says more"},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			hub := fake.NewClientBuilder().WithScheme(scheme.New()).WithObjects(cluster).WithInterceptorFuncs(interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
					if asked++; asked > tc.answers {
						return limited
					}
					if tc.absent {
						return apierrors.NewNotFound(clusterv1alpha1.Resource("clusters"), key.Name)
					}
					return c.Get(ctx, key, obj, opts...)
				},
			}).Build()
			if err := join.Ready(t.Context(), hub, "edge", 250*time.Millisecond); err == nil || err.Error() != tc.want {
				t.Errorf("it says %v, want %s", err, tc.want)
			}
		})
	}
}
