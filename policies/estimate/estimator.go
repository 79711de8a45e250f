package estimate

import workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"

// Assumed is what is to run in a cluster, and is not seen in it yet.
type Assumed struct {
	Namespace  string
	Components []workv1alpha2.Component
}
