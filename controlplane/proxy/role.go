package proxy

import (
	"context"
	"slices"

	workv1alpha2 "github.com/flotilla-io/flotilla/api/work/v1alpha2"
	"github.com/flotilla-io/flotilla/policies/access"
)

// role is what the impersonator's ClusterRole in the member allows, as the hub asked for it.
type role struct {
	version string // resource version of the Work that holds it
	groups  map[string]struct{}
	limited bool
}

// groups returns those that may be impersonated in a cluster, and false if the hub
// has not allowed it there. A request that names another is refused by the member
// as a whole, although its caller may have no need of that group.
func (p *Proxy) groups(ctx context.Context, cluster string) (map[string]struct{}, bool) {
	space := workv1alpha2.ExecutionNamespace(cluster)
	work, err := p.opts.Work(ctx, space, access.RoleWorkName())
	if err != nil { // the Work's old name, before an upgrade renames it
		work, err = p.opts.Work(ctx, space, access.FormerWorkName(access.RoleWorkName()))
	}
	if err != nil {
		return nil, false // somebody else manages the member's RBAC rules
	}
	e := p.entry(cluster)
	if e == nil {
		return nil, false
	}
	defer e.mu.Unlock()
	if version := string(work.UID) + work.ResourceVersion; e.role.version != version {
		e.role = role{version: version}
		e.role.groups, e.role.limited = access.Groups(work)
	}
	return e.role.groups, e.role.limited
}

// within returns the caller with those of its groups that are allowed.
func (c caller) within(allowed map[string]struct{}, limited bool) caller {
	if limited {
		c.groups = slices.DeleteFunc(slices.Clone(c.groups), func(group string) bool {
			_, ok := allowed[group]
			return !ok
		})
	}
	return c
}
