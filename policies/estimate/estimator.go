package estimate

import workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"

// Assumed is what is to run in a cluster, and is not seen in it yet.
type Assumed struct {
	Namespace  string
	Components []workv1alpha2.Component
}

// ComponentOf is one replica that needs as much, as a component; nil needs nothing.
func ComponentOf(need *workv1alpha2.ReplicaRequirements) workv1alpha2.Component {
	out := workv1alpha2.Component{Replicas: 1}
	if need != nil {
		out.ReplicaRequirements = &workv1alpha2.ComponentReplicaRequirements{
			NodeClaim: need.NodeClaim, ResourceRequest: need.ResourceRequest, PriorityClassName: need.PriorityClassName,
		}
	}
	return out
}
