package situation

import (
	"cmp"
	"slices"
	"strings"
	"time"

	kustomizev1 "github.com/fluxcd/kustomize-controller/api/v1"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
)

// controlPlaneKind stands for the control plane itself.
const controlPlaneKind = "ControlPlane"

// rank orders problems by kind: possible causes come before their consequences.
var rank = map[string]int{
	controlPlaneKind:                    0,
	clusterv1alpha1.ResourceKindCluster: 1, sourcev1.GitRepositoryKind: 2, sourcev1.OCIRepositoryKind: 2, sourcev1.BucketKind: 2, sourcev1.ExternalArtifactKind: 2, kustomizev1.KustomizationKind: 3,
	"ClusterPropagationPolicy": 4, "PropagationPolicy": 5,
}

const lastRank = 6

func compareProblems(a, b Problem) int {
	place := func(p Problem) int {
		if r, ok := rank[p.Kind]; ok {
			return r
		}
		return lastRank
	}
	return cmp.Or(
		cmp.Compare(urgency(a.State), urgency(b.State)), cmp.Compare(place(a), place(b)), dependent(a)-dependent(b),
		cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name),
		slices.Compare(a.Clusters, b.Clusters), cmp.Compare(a.Message, b.Message),
	)
}

// dependent moves problems that wait for another Kustomization after what may cause them, such as a circle.
func dependent(p Problem) int {
	waits := strings.Contains(p.Message, "dependency ") && !strings.Contains(p.Message, "circular dependency ")
	if p.Kind == kustomizev1.KustomizationKind && (waits || strings.HasPrefix(p.Next, mendFirst) || strings.HasPrefix(p.Next, followsFrom)) {
		return 1
	}
	return 0
}

func urgency(s State) int {
	if s == Failed {
		return 0
	}
	return 1
}

func isCordon(t corev1.Taint) bool {
	return t.Key == clusterv1alpha1.TaintClusterUnscheduler && t.Effect == corev1.TaintEffectNoSchedule
}

// ago returns how long ago a time is, for people.
func ago(now, then time.Time) string {
	return duration.HumanDuration(max(now.Sub(then), 0)) + " ago"
}
