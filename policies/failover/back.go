package failover

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Left is a cluster that a template was moved off because it, or the template there, failed.
type Left struct {
	// Cluster is its name.
	Cluster string `json:"cluster"`
	// Well is since when it has been seen to be well again, in whole seconds; nil while it is not.
	Well *metav1.Time `json:"well,omitempty"`
}

// Equal reports whether two say the same.
func (l Left) Equal(other Left) bool { return l.Cluster == other.Cluster && l.Well.Equal(other.Well) }

// Back is when a template returns to clusters that it was moved off. The zero value is: never.
type Back struct {
	// Left are the clusters that it was moved off, with what is known of them by now.
	Left []Left
	// Stable are those that have been well for long enough: it is placed anew, and there rather than elsewhere.
	Stable []string
	// Next is when there will be another one by time alone; zero where there will not.
	Next time.Time
}

// BackTo returns when a template returns to the clusters that it was moved off, given which of them
// must not run it, what its placement tolerates, and how it was moved before: each time that it fails again
// soon after, the time is doubled. It never does if its policy does not say after which time.
func BackTo(left []Left, fleet Fleet, spec *workv1alpha2.ResourceBindingSpec, due Due, moves Moves, now time.Time) Back {
	stabilization, returns := stabilizationOf(spec, moves)
	if !returns || len(left) == 0 {
		return Back{}
	}
	var tolerations []corev1.Toleration
	if spec.Placement != nil {
		tolerations = spec.Placement.ClusterTolerations
	}
	well, known := map[string]bool{}, map[string]bool{}
	fleet.Each(func(c *clusterv1alpha1.Cluster) bool {
		_, barred := due[c.Name]
		known[c.Name], well[c.Name] = true, !barred && Movable(c) && isReady(c) && !repels(c, tolerations, now)
		return true
	})
	var out Back
	for _, l := range left {
		switch {
		case !known[l.Cluster]:
			continue // it has left the fleet
		case !well[l.Cluster]:
			l.Well = nil
		case l.Well == nil:
			at := metav1.NewTime(now.UTC().Truncate(time.Second))
			l.Well = &at
		}
		out.Left = append(out.Left, l)
		if l.Well == nil {
			continue
		}
		if at := l.Well.Add(stabilization); at.After(now) {
			out.Next = Earlier(out.Next, at)
		} else {
			out.Stable = append(out.Stable, l.Cluster)
		}
	}
	return out
}

// repels reports whether a cluster has a taint that is not tolerated, or not for ever.
func repels(c *clusterv1alpha1.Cluster, tolerations []corev1.Toleration, now time.Time) bool {
	return slices.ContainsFunc(c.Spec.Taints, func(t corev1.Taint) bool {
		switch t.Effect {
		case corev1.TaintEffectNoExecute:
			_, ends := Rules{}.toleratedUntil(&t, tolerations, now)
			return ends
		case corev1.TaintEffectNoSchedule:
			return !Tolerates(&t, tolerations)
		default:
			return false
		}
	})
}
