package batch

import (
	"maps"

	"github.com/flotilla-io/flotilla/policies/interpreter/kinds"
)

// Table returns the rules for all kinds of this package.
func Table() kinds.Table {
	all := kinds.Table{}
	for _, project := range []kinds.Table{volcano(), flink(), spark(), kubeflow(), ray(), sigs()} {
		maps.Copy(all, project)
	}
	return all
}
