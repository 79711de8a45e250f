package situation

import (
	"strings"

	"github.com/flotilla-io/flotilla/cmd/flotilla/overview/situation/wording"
	"github.com/flotilla-io/flotilla/policies/excerpt"
)

// mendFirst begins the next step of what is not ready because another Kustomization is not.
const mendFirst = "mend that first: "

// leaveTo takes out of a problem what the Kustomizations that it names say themselves, as they have problems of their own.
func (p *Problem) leaveTo(all []Kustomization) {
	first := len(p.Message)
	for _, child := range all {
		named := "Kustomization/" + child.Namespace + "/" + child.Name
		at := strings.Index(p.Message, named+": "+excerpt.Revisions(child.Message))
		if child.Message == "" || child.State != Failed || p.isAbout(child) || at < 0 {
			continue
		}
		p.Message = strings.Replace(p.Message, named+": "+excerpt.Revisions(child.Message), named, 1)
		if at < first {
			first, p.Next = at, mendFirst+"flotilla tree kustomization/"+child.Name+wording.InNamespace(child.Namespace)
		}
	}
}
