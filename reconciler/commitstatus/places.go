package commitstatus

import (
	gitopsv1alpha1 "github.com/flotilla-io/flotilla/api/gitops/v1alpha1"
	"github.com/flotilla-io/flotilla/policies/comment"
	"github.com/flotilla-io/flotilla/policies/excerpt"
	"github.com/flotilla-io/flotilla/policies/rollup"
)

// Bounds of what is kept of clusters, as the kind has them.
const (
	mostStates  = 1000
	mostMessage = 256 // in characters
)

// statesOf is what a CommitStatus keeps of each cluster. Of more than it may hold, the last are left out: those
// that are well.
func statesOf(places []rollup.Place) []gitopsv1alpha1.ClusterState {
	var out []gitopsv1alpha1.ClusterState
	for _, p := range places[:min(len(places), mostStates)] {
		out = append(out, gitopsv1alpha1.ClusterState{Name: p.Cluster, State: p.State.String(), Message: excerpt.Runes(excerpt.Line(excerpt.WithoutCredentials(p.Reason)), mostMessage)})
	}
	return out
}

// placesOf is the inverse of statesOf.
func placesOf(states []gitopsv1alpha1.ClusterState) []rollup.Place {
	var out []rollup.Place
	for _, s := range states {
		for _, state := range []rollup.State{rollup.Healthy, rollup.Progressing, rollup.Unknown, rollup.Failed} {
			if state.String() == s.State {
				out = append(out, rollup.Place{Cluster: s.Name, State: state, Reason: s.Message})
			}
		}
	}
	return out
}

// sharesOf are the shares without their clusters.
func sharesOf(shares []comment.Share) []rollup.Share {
	out := make([]rollup.Share, 0, len(shares))
	for _, s := range shares {
		out = append(out, s.Share)
	}
	return out
}
