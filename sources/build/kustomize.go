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
)

// Job is what kustomize is asked to do. It was inspected: nothing in it reaches
// further than its files.
type Job struct {
	// Files are contents by slash-separated path from the root.
	Files map[string][]byte
	// Root is the folder with the kustomization, as an absolute path.
	Root string
	// Objects is how many objects may come of it.
	Objects int
}

// Runner runs kustomize apart from this process, where it can be ended.
type Runner interface {
	// Run returns the objects of a job, and when it returns nothing of it runs on.
	// Errors: ErrKustomize, ErrTooLarge, and that of a context that ended.
	Run(ctx context.Context, job Job) ([]*yaml.Node, error)
}

// Kustomize runs kustomize here and now. It cannot be interrupted, and what the job
// says of schemas stays in globals of the process, in which nothing else should be
// built therefore. Errors: ErrKustomize.
func Kustomize(job Job) ([]*yaml.Node, error) {
	files := newMemory(job.Files)
	return render(files, job.Root)
}

func render(files *memory, root string) (out []*yaml.Node, err error) {
	// kustomize panics on some malformed objects.
	defer func() {
		if r := recover(); r != nil {
			out, err = nil, fmt.Errorf("%w: malformed object: %v", ErrKustomize, r)
		}
	}()
	options := &krusty.Options{
		Reorder: krusty.ReorderOptionNone,
		// The file system has nothing but the source in it; as with Flux, a
		// file of it may be used from any folder.
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

// maxMessage is how much of kustomize's own words an error repeats, in bytes.
const maxMessage = 1000

func oneLine(s string) string {
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > maxMessage {
		s = strings.ToValidUTF8(s[:maxMessage], "") + "…"
	}
	return s
}

// everybody is more than the builds that run at a time.
const everybody = 1 << 20

// inProcess runs kustomize in this process. Builds that bring schemas of their own
// run alone, since kustomize keeps those in globals: that is for programs that
// build one thing after the other.
type inProcess struct{ schemas *semaphore.Weighted }

func (r inProcess) run(ctx context.Context, p plan) ([]*yaml.Node, error) {
	share := int64(1)
	if p.ownSchemas {
		share = everybody
	}
	if err := r.schemas.Acquire(ctx, share); err != nil {
		return nil, fmt.Errorf("kustomize build: %w", context.Cause(ctx))
	}
	type outcome struct {
		nodes []*yaml.Node
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		defer r.schemas.Release(share)
		if p.ownSchemas {
			defer openapi.ResetOpenAPI()
		}
		nodes, err := render(p.files, p.root)
		done <- outcome{nodes, err}
	}()
	select {
	case o := <-done:
		return o.nodes, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("kustomize build: %w", context.Cause(ctx))
	}
}

// What kustomize may be asked to do in a process that does other things, too:
// what is given up runs on, and ends within a second or two.
const (
	// mostHere is how many objects may be built here.
	mostHere = 500
	// comparesHere is how often kustomize may compare two objects: each with each
	// others in each kustomization.
	comparesHere = 2_500_000
	// changesHere is how many bytes may be gone through: all of the manifests, for
	// each thing that kustomizations, patches and the like say.
	changesHere = 256 << 20
	// nodesHere is how many nodes may be built here: kustomize holds several copies
	// of each.
	nodesHere = 100_000
	// perObject is what an object takes beside its bytes.
	perObject = 512
)

// small says whether a build may run where it cannot be ended.
func (i *inspection) small() bool {
	return !i.ownSchemas && !i.ownTypes && i.objects <= mostHere && i.nodes <= nodesHere &&
		i.objects*i.objects*i.visits <= comparesHere &&
		(i.bytes+i.objects*perObject)*i.sayings <= changesHere
}
