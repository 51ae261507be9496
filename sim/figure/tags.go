package figure

import "slices"

// tags writes each name where it covers nothing, and draws a line to its point if that is not
// beside it.
func (p *plot) tags(at []point, names []string) {
	for i, r := range place(at, names, p.area) {
		from, to := at[i], point{r.Min.X, (r.Min.Y + r.Max.Y) / 2}
		if r.Min.X < from.X {
			to.X = r.Max.X
		}
		if away := to.Y - from.Y; away < -4 || away > 4 {
			p.add(`<path stroke="#a0a0a0" stroke-width=".5" d="M%.1f %.1fL%.1f %.1f"/>`, from.X, from.Y, to.X, to.Y)
		}
		p.text(point{r.Min.X, r.Max.Y - 1}, tagSize, "start", 0, names[i])
	}
}

// tagSize is the font size of names beside points.
const tagSize = 8.0

// place returns a rectangle for each name: beside its point, to the right unless that is outside,
// moved up or down until it covers no point and no other name.
func place(points []point, names []string, within rectangle) []rectangle {
	const near, beside, line = 3, 7, 9.5 // around a point, to the name, from line to line
	var taken []rectangle
	for _, p := range points {
		taken = append(taken, rectangle{point{p.X - near, p.Y - near}, point{p.X + near, p.Y + near}})
	}
	out := make([]rectangle, len(points))
	for i, p := range points {
		wide := textWidth(names[i], tagSize)
		x := p.X + beside
		if x+wide > within.Max.X {
			x = p.X - beside - wide
		}
		for k := range 4 * len(points) {
			away := float64((k+1)/2) * line
			if k%2 == 0 {
				away = -away
			}
			y := p.Y + near + away // the lower edge of the letters
			out[i] = rectangle{point{x, y - line + 1}, point{x + wide, y}}
			if y <= within.Max.Y+near && out[i].Min.Y > within.Min.Y && !slices.ContainsFunc(taken, func(r rectangle) bool { return overlap(r, out[i]) }) {
				break
			}
		}
		taken = append(taken, out[i])
	}
	return out
}

func overlap(a, b rectangle) bool {
	return a.Min.X < b.Max.X && b.Min.X < a.Max.X && a.Min.Y < b.Max.Y && b.Min.Y < a.Max.Y
}
