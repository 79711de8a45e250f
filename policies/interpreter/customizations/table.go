package customizations

import (
	"maps"

	"github.com/flotilla-io/flotilla/policies/interpreter/customizations/batch"
	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Table returns the rules for all kinds of other projects that Flotilla knows.
func Table() kinds.Table {
	all := kinds.Table{}
	for _, ecosystem := range []kinds.Table{
		batch.Table(), kruise(), argo(), flux(), kyverno(),
		certManager(), keda(), gateway(), prometheus(), knative(), databases(),
	} {
		maps.Copy(all, ecosystem)
	}
	return all
}
