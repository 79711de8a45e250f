package inclusion

import (
	"path"
	"strings"

	"github.com/fluxcd/pkg/apis/meta"
	sourcev1 "github.com/fluxcd/source-controller/api/v1"
)

// Origin returns by which include a file of a GitRepository's artifact has come, with the artifact that is included and the file's
// path there; nil if by none, or if its path does not show that. A file of the repository itself may stand beside.
func Origin(r *sourcev1.GitRepository, file string) (by *sourcev1.GitRepositoryInclude, of *meta.Artifact, there string) {
	if len(r.Status.ObservedInclude) != len(r.Status.IncludedArtifacts) {
		return nil, nil, ""
	}
	longest := ""
	for i, include := range r.Status.ObservedInclude {
		to, err := Path(include.GetToPath())
		if err != nil || to == "." || r.Status.IncludedArtifacts[i] == nil || file != to && !strings.HasPrefix(file, to+"/") || len(to) < len(longest) {
			continue
		}
		from, err := Path(include.GetFromPath())
		if err != nil {
			continue
		}
		longest, by, of = to, &r.Status.ObservedInclude[i], r.Status.IncludedArtifacts[i]
		there = path.Join(from, strings.TrimPrefix(file, to))
	}
	return by, of, there
}
