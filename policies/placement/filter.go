package placement

import (
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/plugins"
	"github.com/flotilla-io/flotilla/policies/placement/unfit"
)

// filter asks every plugin about every cluster and returns those that all of
// them let pass, with their scores; *FitError where there is none. Clusters
// that are going away are no candidates and are not counted.
func (a *attempt) filter(ask *framework.Request, snap Snapshot) (fit []framework.Candidate, err error) {
	var asked framework.Plugin // the one that is running
	defer recoverPlugin(&asked, &err)
	active := a.opts.active()
	fit = make([]framework.Candidate, 0, len(snap.clusters))
	var refusals []Reason // as long as nobody fits
next:
	for _, c := range snap.clusters {
		if c.DeletionTimestamp != nil {
			continue
		}
		for _, f := range active.filters {
			asked = f
			if reason := f.Filter(ask, c); reason != "" {
				if len(fit) > 0 && a.trace == nil {
					continue next // nobody asks why
				}
				why := active.refusal(ask, c, Reason{Plugin: f.Name(), Text: reason})
				refusals = append(refusals, why)
				a.trace.refused(c, why.Plugin, why.Text)
				continue next
			}
		}
		candidate := framework.Candidate{Cluster: c}
		verdict := a.trace.fits(c)
		for _, s := range active.scorers {
			asked = s
			score := min(max(s.Score(ask, c), 0), framework.MaxScore)
			candidate.Score += score
			verdict.scored(s.Name(), score)
		}
		fit = append(fit, candidate)
	}
	if len(fit) == 0 {
		return nil, unfit.New(refusals)
	}
	return fit, nil
}

// active are plugins by what they do.
type active struct {
	filters  []framework.Filter
	scorers  []framework.Score
	affinity framework.Filter // one of the filters; nil where it is off
}

// refusal is what an error says of a cluster that is refused for a reason: of one that
// the affinity does not mean, nothing else. A binding is not looked at again when
// such a cluster changes, so the error must not depend on what else is there.
func (a *active) refusal(ask *framework.Request, c *framework.Cluster, reason Reason) Reason {
	if a.affinity == nil {
		return reason
	}
	if text := a.affinity.Filter(ask, c); text != "" {
		return Reason{Plugin: a.affinity.Name(), Text: text}
	}
	return reason
}

// builtIn are the plugins of options that name none.
var builtIn = split(plugins.All())

func (o *Options) active() active {
	if o.Plugins == nil {
		return builtIn
	}
	return split(o.Plugins)
}

func split(all []framework.Plugin) active {
	var out active
	for _, p := range all {
		if f, ok := p.(framework.Filter); ok {
			out.filters = append(out.filters, f)
			if _, means := f.(plugins.ClusterAffinity); means {
				out.affinity = f
			}
		}
		if s, ok := p.(framework.Score); ok {
			out.scorers = append(out.scorers, s)
		}
	}
	return out
}
