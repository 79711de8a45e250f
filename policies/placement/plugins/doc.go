// Package plugins holds the placement plugins that are built in, under the
// names by which users switch them on and off.
//
// In go a placement request and one cluster; out comes a reason to refuse the
// cluster, or a score. No plugin looks beyond the two.
package plugins
