package member_test

import (
	"context"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flotilla-io/flotilla/controlplane/member"
	"github.com/flotilla-io/flotilla/controlplane/member/membertest"
)

// BenchmarkPods makes the pods of one Deployment ready, 300 on 3 nodes: what a benchmark of the hub can expect of
// its members.
func BenchmarkPods(b *testing.B) {
	const replicas = 300
	m := membertest.Start(b, member.Options{})
	pods := 0
	for b.Loop() {
		deployment(b, m.Client, "default", replicas, "nginx:1")
		deploymentReady(b, m.Client, "default", replicas)
		pods += replicas
		b.StopTimer()
		foreground := metav1.DeletePropagationForeground
		if err := m.Client.AppsV1().Deployments("default").Delete(b.Context(), "x", metav1.DeleteOptions{PropagationPolicy: &foreground}); err != nil {
			b.Fatal(err)
		}
		eventually(b, "deployment is gone", func(ctx context.Context) (string, error) {
			_, err := m.Client.AppsV1().Deployments("default").Get(ctx, "x", metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return "", nil
			}
			return "it is there", err
		})
		b.StartTimer()
	}
	b.ReportMetric(float64(pods)/b.Elapsed().Seconds(), "pods/s")
}
