package members

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"

	clusterv1alpha1 "github.com/flotilla-io/flotilla/api/cluster/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/hubclaim"
)

// shown is what the namespace kube-system of a member has shown that only grows. The
// zero value is that of one that was not looked at.
type shown struct {
	version int64          // of the namespace; 0 where versions are no numbers
	mark    *hubclaim.Mark // nil: none
}

func shownBy(system *corev1.Namespace) shown {
	var out shown
	if version, err := strconv.ParseInt(system.ResourceVersion, 10, 64); err == nil {
		out.version = version
	}
	if claim, err := hubclaim.Parse(system.Annotations[clusterv1alpha1.ClaimAnnotation]); err == nil && claim != nil {
		out.mark = claim.Mark
	}
	return out
}

// before reports whether what is shown now is from before what was shown then: the member
// was set back to an earlier state, or somebody has changed its mark.
func (s shown) before(then shown) bool { return s.version < then.version || s.mark.Before(then.mark) }

// observe notes what the member shows, and reports whether that is from before what it has
// shown already.
func (t *tenure) observe(system *corev1.Namespace) (rewound bool) {
	is := shownBy(system)
	t.mu.Lock()
	defer t.mu.Unlock()
	rewound = is.before(t.shown)
	t.shown = is
	return rewound
}
