package placement

import (
	"github.com/flotilla-io/flotilla/policies/placement/framework"
	"github.com/flotilla-io/flotilla/policies/placement/plugins"
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
				if len(fit) == 0 {
					refusals = append(refusals, Reason{Plugin: f.Name(), Text: reason})
				}
				a.trace.refused(c, f.Name(), reason)
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
		return nil, newFitError(refusals)
	}
	return fit, nil
}

// active are plugins by what they do.
type active struct {
	filters []framework.Filter
	scorers []framework.Score
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
		}
		if s, ok := p.(framework.Score); ok {
			out.scorers = append(out.scorers, s)
		}
	}
	return out
}
