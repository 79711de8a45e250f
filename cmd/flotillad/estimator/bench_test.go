package estimator

import (
	"context"
	"fmt"
	"net"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	estimatorapi "github.com/flotilla-io/flotilla/api/estimator"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/reconciler/cluster/capacity"
)

// BenchmarkThousandQuestions asks a thousand questions, 16 at a time, over one connection, about
// 5,000 nodes with 50,000 pods on them.
func BenchmarkThousandQuestions(b *testing.B) {
	const allNodes, allPods, questions, together = 5_000, 50_000, 1_000, 16
	list := func(cpu, memory string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu), corev1.ResourceMemory: resource.MustParse(memory)}
	}
	m := NewMember(nil, true, clock.RealClock{})
	for i := range allNodes {
		offer := list("32", "128Gi")
		offer[corev1.ResourcePods] = resource.MustParse("110")
		kept, err := capacity.TrimNode(&corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i), Labels: map[string]string{"zone": fmt.Sprint(i % 3)}}, Status: corev1.NodeStatus{Allocatable: offer},
		})
		if err != nil {
			b.Fatal(err)
		}
		m.tracker.Nodes().OnAdd(kept, true)
	}
	for i := range allPods {
		kept, err := capacity.TrimPod(&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: fmt.Sprint("p", i)},
			Spec: corev1.PodSpec{NodeName: fmt.Sprint("n", i%allNodes), Containers: []corev1.Container{
				{Resources: corev1.ResourceRequirements{Requests: list(fmt.Sprint(100+i%900, "m"), "1Gi")}},
			}},
		})
		if err != nil {
			b.Fatal(err)
		}
		m.tracker.Pods().OnAdd(kept, true)
	}
	m.tracker.Known()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- New(m, Options{Cluster: "m1", Assumed: true, Parallelism: together}).Serve(ctx, listener, insecure.NewCredentials())
	}()
	defer func() {
		stop()
		<-ended
	}()
	conn, err := grpc.NewClient("passthrough:///"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		b.Fatal(err)
	}
	defer conn.Close()
	client := estimatorapi.NewEstimatorClient(conn)
	need, err := estimatorapi.NewReplicaRequirements(&workv1alpha2.ReplicaRequirements{
		Namespace: "shop", ResourceRequest: list("1500m", "2Gi"), NodeClaim: &workv1alpha2.NodeClaim{NodeSelector: map[string]string{"zone": "1"}},
	})
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		var all sync.WaitGroup
		for range together {
			all.Go(func() {
				for range questions / together {
					answer, err := client.MaxAvailableReplicas(b.Context(), &estimatorapi.MaxAvailableReplicasRequest{Cluster: "m1", ReplicaRequirements: need})
					if err != nil || answer.MaxReplicas == 0 {
						b.Errorf("answer %v, %v", answer, err)
						return
					}
				}
			})
		}
		all.Wait()
	}
}
