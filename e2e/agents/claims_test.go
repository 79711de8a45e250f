package agents

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/e2e/fleet"
)

// claimed is a claim with a policy that carries it to a cluster.
func claimed(namespace, cluster string) string {
	return `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, namespace: ` + namespace + `}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Mi}}}
---
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: data, namespace: ` + namespace + `}
spec:
  resourceSelectors: [{apiVersion: v1, kind: PersistentVolumeClaim, name: data}]
  placement: {clusterAffinity: {clusterNames: [` + cluster + `]}}
`
}

// TestAClaimOutlivesItsWorkThroughAnAgent: it stays in a cluster in pull mode that it is not for any more, the same one, and
// the agent reports it, another one, too; until it is asked for there again, and in the end deleted.
func TestAClaimOutlivesItsWorkThroughAnAgent(t *testing.T) {
	t.Parallel() // it waits for most of its time
	namespace := fleet.NameOf(t)
	s := the.site(t, fleet.Again(t, "keeps"))
	eventually(t, time.Minute, "the cluster is ready", the.judged(s.name, metav1.ConditionTrue))
	the.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n---\n"+claimed(namespace, s.name))
	data := &corev1.PersistentVolumeClaim{}
	read := func(ctx context.Context) error {
		return s.client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: "data"}, data)
	}
	eventually(t, time.Minute, "the member has the claim", read)
	was := data.UID

	kept := the.condition(s.name, clusterv1alpha1.ClusterConditionClaimsKept, namespace+"/data")
	the.Apply(t, claimed(namespace, "west"))
	eventually(t, 2*time.Minute, "the cluster says that the claim stays", kept)
	if err := s.agent.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.agent.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "the cluster is ready again", the.judged(s.name, metav1.ConditionTrue))
	if err := errors.Join(read(t.Context()), kept(t.Context())); err != nil || data.UID != was || data.DeletionTimestamp != nil {
		t.Fatalf("%v; the claim is %s, deleted at %v; it was %s", err, data.UID, data.DeletionTimestamp, was)
	}

	the.Apply(t, claimed(namespace, s.name))
	eventually(t, 2*time.Minute, "nothing is said of it any more", the.condition(s.name, clusterv1alpha1.ClusterConditionClaimsKept, ""))
	if err := read(t.Context()); err != nil || data.UID != was {
		t.Fatalf("%v; the claim is %s, it was %s", err, data.UID, was)
	}
}
