package build

import (
	"context"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/sync/semaphore"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/flotilla-io/flotilla/sources/build/overrun"
)

// render runs kustomize. It cannot be interrupted, and schemas in the files stay
// in globals of the process. Errors: ErrKustomize.
func render(files *memory, root string) (out []*yaml.Node, err error) {
	// kustomize panics on some malformed objects.
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("%w: malformed object: %v", ErrKustomize, r)
		}
	}()
	options := &krusty.Options{
		Reorder: krusty.ReorderOptionNone,
		// The file system has only the source's files; as with Flux, any of them
		// may be used from any folder.
		LoadRestrictions: types.LoadRestrictionsNone,
		PluginConfig:     types.DisabledPluginConfig(),
	}
	resources, err := krusty.MakeKustomizer(options).Run(files, root)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", ErrKustomize, oneLine(err.Error()))
	}
	out = make([]*yaml.Node, 0, resources.Size())
	for _, r := range resources.Resources() {
		out = append(out, r.YNode())
	}
	return out, nil
}

// maxMessage is how much of kustomize's message an error quotes, in bytes.
const maxMessage = 1000

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}

// everybody is more than the number of builds that run at a time.
const everybody = 1 << 20

// inProcess runs kustomize in this process. Builds with schemas of their own run
// alone, since kustomize keeps those in globals. That is for programs that build
// one thing after another.
type inProcess struct {
	schemas  *semaphore.Weighted
	overruns *overrun.Overruns
}

func (r inProcess) run(ctx context.Context, p plan, tenant string) ([]*yaml.Node, error) {
	build, err := r.overruns.Begin(tenant)
	if err != nil {
		return nil, err
	}
	share := int64(1)
	if p.ownSchemas {
		share = everybody
	}
	if err := r.schemas.Acquire(ctx, share); err != nil {
		return nil, fmt.Errorf("kustomize build: %w", context.Cause(ctx))
	}
	var nodes []*yaml.Node
	var fault error
	err = build.Await(ctx, func() {
		defer r.schemas.Release(share)
		if p.ownSchemas {
			defer openapi.ResetOpenAPI()
		}
		nodes, fault = render(p.files, p.root)
	})
	if err != nil { // the others may still be written
		return nil, fmt.Errorf("kustomize build: %w", err)
	}
	return nodes, fault
}
