package failover

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
)

// Left is a cluster that a template was moved away from because the cluster, or
// the template in it, failed.
type Left struct {
	// Cluster is its name.
	Cluster string `json:"cluster"`
	// Well is since when it has been healthy again, in whole seconds; nil while it
	// is not.
	Well *metav1.Time `json:"well,omitempty"`
}

// Equal reports whether the two are the same.
func (l Left) Equal(other Left) bool { return l.Cluster == other.Cluster && l.Well.Equal(other.Well) }

// Back is which clusters a template returns to, and when. The zero value means
// never.
type Back struct {
	// Left are the clusters that it was moved away from, with Well as it is now.
	Left []Left
	// Stable are those that have been healthy for long enough: the template is
	// placed again, and prefers them.
	Stable []string
	// Next is when another one will be stable by time alone; zero where none will.
	Next time.Time
}

// BackTo returns which of the clusters that a template was moved away from it
// returns to, and when. due are the clusters that must not run it. The time for
// which a cluster has to be healthy is doubled with each move of the application
// that was soon after another one. Without spec.failover.failBackSeconds the
// template never returns.
func BackTo(left []Left, fleet Fleet, spec *workv1alpha2.ResourceBindingSpec, due Due, moves Moves, now time.Time) Back {
	stabilization, returns := stabilizationOf(spec, moves)
	if !returns || len(left) == 0 {
		return Back{}
	}
	tolerations := tolerationsOf(spec)
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
			continue // the cluster has left the fleet
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

func tolerationsOf(spec *workv1alpha2.ResourceBindingSpec) []corev1.Toleration {
	if spec.Placement == nil {
		return nil
	}
	return spec.Placement.ClusterTolerations
}

// repels reports whether a cluster has a taint that the tolerations do not
// tolerate for good.
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
