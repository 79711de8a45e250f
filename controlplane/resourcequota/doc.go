// Package resourcequota has a ResourceQuota of the hub limit how many objects its
// namespace holds on the hub, as in any cluster.
//
// In goes what is created in a namespace, and the quotas that there are; out comes a
// refusal, or nothing. How much there is, a controller of the housekeeping counts in the
// way that this package says, and writes into the quota's status. Only numbers of objects
// count, `count/*` and the older names: what a template will use is for the clusters that
// run it. A quota that a policy carries to members is a template as well: it limits
// nothing here, and its status is what the members say.
package resourcequota
