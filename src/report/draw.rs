//! Pictures of graphs: DOT for Graphviz, and SVG that needs nothing else.

use crate::pipeline::{Cut, Graph, Producer, StepId};

/// A box of the picture.
struct Node {
    id: String,
    title: String,
    below: String,
    side: Side,
    /// How far it is from the sources.
    layer: usize,
}

/// On which side of the cut something is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Source,
    Offline,
    Online,
}

/// An arrow of the picture.
struct Edge {
    from: usize,
    to: usize,
    label: String,
    /// Whether its column is stored.
    stored: bool,
    /// Whether it is rows that go along it, and no column of their own.
    rows: bool,
}

/// A graph with its cut, ready to be drawn.
pub struct Drawing {
    name: String,
    nodes: Vec<Node>,
    edges: Vec<Edge>,
}

impl Drawing {
    /// The steps of a graph and what goes from one to the other; what a cut runs offline and what it stores.
    #[must_use]
    pub fn new(graph: &Graph, cut: Option<&Cut>) -> Self {
        let mut nodes: Vec<Node> = graph
            .sources
            .iter()
            .map(|source| Node {
                id: format!("source {}", source.name),
                title: source.name.clone(),
                below: format!("{} files", source.listing.fragments.len()),
                side: Side::Source,
                layer: 0,
            })
            .collect();
        let sources = nodes.len();
        let place = |producer: Producer| match producer {
            Producer::Source(source) => source,
            Producer::Step(id) => sources + id.0,
        };
        let mut edges: Vec<Edge> = Vec::new();
        for (id, step) in graph.step_ids() {
            let side = match cut {
                Some(cut) if cut.offline.contains(&id) => Side::Offline,
                None if !step.online_only => Side::Offline,
                _ => Side::Online,
            };
            let rows = if step.rows().name() == "map" { String::new() } else { format!(", {}", step.rows().name()) };
            let random = if step.random() { ", random" } else { "" };
            let to = nodes.len();
            let before = edges.len();
            for input in &step.inputs {
                let column = graph.column(*input);
                let stored = cut.is_some_and(|cut| cut.frontier.contains(input) && !cut.offline.contains(&id));
                let label = format!("{}: {}", column.name, column.column_type);
                add(&mut edges, Edge { from: place(column.producer), to, label, stored, rows: false });
            }
            // A step on rows that another has made, with no column of those, hangs on the rows.
            let own_rows = step.inputs.iter().any(|input| graph.column(*input).relation == step.relation);
            let maker = place(graph.relation(step.relation).producer);
            if step.rows().is_row_local() && !own_rows && maker != to {
                add(&mut edges, Edge { from: maker, to, label: "rows".to_owned(), stored: false, rows: true });
            }
            for relation in &step.reads {
                let from = place(graph.relation(*relation).producer);
                if edges[before..].iter().all(|edge| edge.from != from) && !step.rows().is_row_local() {
                    add(&mut edges, Edge { from, to, label: "rows".to_owned(), stored: false, rows: true });
                }
            }
            let layer = edges[before..].iter().map(|edge| nodes[edge.from].layer + 1).max().unwrap_or(1);
            let below = format!("{}{rows}{random}", step.op_name());
            nodes.push(Node { id: format!("step {}", step.name), title: step.name.clone(), below, side, layer });
        }
        let to = nodes.len();
        for output in &graph.outputs {
            let column = graph.column(*output);
            let stored = cut.is_some_and(|cut| cut.frontier.contains(output));
            let label = format!("{}: {}", column.name, column.column_type);
            add(&mut edges, Edge { from: place(column.producer), to, label, stored, rows: false });
        }
        let layer = nodes.iter().map(|node| node.layer).max().unwrap_or(0) + 1;
        let below = "batches".to_owned();
        nodes.push(Node { id: "output".to_owned(), title: "stream".to_owned(), below, side: Side::Online, layer });
        debug_assert!(graph.steps.is_empty() || graph.step(StepId(0)).name == nodes[sources].title, "steps in order");
        Self { name: graph.name.clone(), nodes, edges }
    }

    /// The picture in DOT.
    #[must_use]
    pub fn dot(&self) -> String {
        let quoted = |text: &str| format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""));
        let mut text = format!(
            "digraph {} {{\n  rankdir=LR\n  node [shape=box, style=\"rounded,filled\", fontname=\"sans-serif\"]\n  edge \
             [fontname=\"sans-serif\", fontsize=10]\n",
            quoted(&self.name)
        );
        for node in &self.nodes {
            let (fill, style) = match node.side {
                Side::Source => ("white", "filled"),
                Side::Offline => ("#d8e8d0", "rounded,filled"),
                Side::Online => ("#fde8c8", "rounded,filled,dashed"),
            };
            text.push_str(&format!(
                "  {} [label={}, fillcolor=\"{fill}\", style=\"{style}\"]\n",
                quoted(&node.id),
                quoted(&format!("{}\n{}", node.title, node.below)).replace('\n', "\\n")
            ));
        }
        for edge in &self.edges {
            let style = match (edge.stored, edge.rows) {
                (true, _) => ", penwidth=3",
                (false, true) => ", style=dotted",
                (false, false) => "",
            };
            text.push_str(&format!(
                "  {} -> {} [label={}{style}]\n",
                quoted(&self.nodes[edge.from].id),
                quoted(&self.nodes[edge.to].id),
                quoted(&edge.label)
            ));
        }
        text.push_str("}\n");
        text
    }

    /// The picture as SVG: layers from top to bottom, offline boxes with a solid border, online ones with a dashed one,
    /// stored columns as thick arrows.
    #[must_use]
    pub fn svg(&self) -> String {
        let layers = self.nodes.iter().map(|node| node.layer).max().unwrap_or(0) + 1;
        let mut places: Vec<(f64, f64)> = vec![(0.0, 0.0); self.nodes.len()];
        let mut widest: f64 = 0.0;
        for layer in 0..layers {
            let mut members: Vec<usize> = (0..self.nodes.len()).filter(|at| self.nodes[*at].layer == layer).collect();
            // Each stands under what it reads, as far as there is room.
            let wanted = |at: &usize| {
                let from: Vec<f64> =
                    self.edges.iter().filter(|edge| edge.to == *at).map(|edge| places[edge.from].0).collect();
                if from.is_empty() { *at as f64 * GAP_X } else { from.iter().sum::<f64>() / from.len() as f64 }
            };
            let mut order: Vec<(f64, usize)> = members.drain(..).map(|at| (wanted(&at), at)).collect();
            order.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            let mut left = 0.0_f64;
            for (x, at) in order {
                let x = x.max(left);
                places[at] = (x, layer as f64 * GAP_Y);
                left = x + GAP_X;
                widest = widest.max(x);
            }
        }
        let (width, height) =
            (widest + WIDTH + 2.0 * MARGIN + 160.0, (layers - 1) as f64 * GAP_Y + HEIGHT + 2.0 * MARGIN + 40.0);
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width:.0} {height:.0}\" width=\"{width:.0}\" \
             height=\"{height:.0}\" font-family=\"sans-serif\" font-size=\"13\" role=\"img\">\n<title>{}</title>\n<rect \
             width=\"100%\" height=\"100%\" fill=\"white\"/>\n<defs><marker id=\"head\" viewBox=\"0 0 10 10\" refX=\"9\" \
             refY=\"5\" markerWidth=\"8\" markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\"><path d=\"M0 0 \
             L10 5 L0 10 z\" fill=\"#444\"/></marker></defs>\n",
            escaped(&self.name)
        );
        for (number, edge) in self.edges.iter().enumerate() {
            self.svg_edge(edge, number, &places, &mut text);
        }
        for (node, (x, y)) in self.nodes.iter().zip(&places) {
            let (fill, dash) = match node.side {
                Side::Source => ("#ffffff", ""),
                Side::Offline => ("#d8e8d0", ""),
                Side::Online => ("#fde8c8", " stroke-dasharray=\"6 3\""),
            };
            let (x, y) = (x + MARGIN, y + MARGIN);
            let middle = x + WIDTH / 2.0;
            text.push_str(&format!(
                "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{WIDTH}\" height=\"{HEIGHT}\" rx=\"7\" fill=\"{fill}\" \
                 stroke=\"#444\"{dash}/>\n<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\" \
                 font-weight=\"bold\">{}</text>\n<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\" \
                 font-size=\"11\" fill=\"#333\">{}</text>\n",
                y + 19.0,
                escaped(&node.title),
                y + 35.0,
                escaped(&node.below)
            ));
        }
        let y = height - 18.0;
        text.push_str(&format!(
            "<text x=\"{MARGIN}\" y=\"{y:.1}\" font-size=\"11\" fill=\"#333\">solid border: offline (may be) · dashed \
             border: online · thick arrow: stored column · dotted arrow: rows</text>\n</svg>\n"
        ));
        text
    }

    fn svg_edge(&self, edge: &Edge, number: usize, places: &[(f64, f64)], text: &mut String) {
        let (from, to) = (places[edge.from], places[edge.to]);
        let (x1, y1) = (from.0 + MARGIN + WIDTH / 2.0, from.1 + MARGIN + HEIGHT);
        let (x2, y2) = (to.0 + MARGIN + WIDTH / 2.0, to.1 + MARGIN);
        // Arrows over several layers go around the boxes between.
        let long = self.nodes[edge.to].layer > self.nodes[edge.from].layer + 1;
        let bend = if long { WIDTH * 1.1 + 14.0 * (number % 4) as f64 } else { 0.0 };
        let (c1, c2) = ((x1 + bend, y1 + 45.0), (x2 + bend, y2 - 45.0));
        let (width, dots) = match (edge.stored, edge.rows) {
            (true, _) => (4.0, ""),
            (false, true) => (1.3, " stroke-dasharray=\"2 4\""),
            (false, false) => (1.3, ""),
        };
        text.push_str(&format!(
            "<path d=\"M{x1:.1} {y1:.1} C{:.1} {:.1} {:.1} {:.1} {x2:.1} {y2:.1}\" fill=\"none\" stroke=\"#444\" \
             stroke-width=\"{width}\"{dots} marker-end=\"url(#head)\"/>\n",
            c1.0, c1.1, c2.0, c2.1
        ));
        // The middle of the curve (Bezier, t = 1/2).
        let x = (x1 + 3.0 * c1.0 + 3.0 * c2.0 + x2) / 8.0 + 6.0;
        let y = (y1 + 3.0 * c1.1 + 3.0 * c2.1 + y2) / 8.0 + 4.0;
        text.push_str(&format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"10\" fill=\"#333\" stroke=\"white\" stroke-width=\"3\" \
             paint-order=\"stroke\">{}</text>\n",
            escaped(&edge.label)
        ));
    }
}

const WIDTH: f64 = 170.0;
const HEIGHT: f64 = 46.0;
const GAP_X: f64 = 215.0;
const GAP_Y: f64 = 105.0;
const MARGIN: f64 = 20.0;

/// Adds an arrow; columns between the same boxes share one.
fn add(edges: &mut Vec<Edge>, edge: Edge) {
    let same = |other: &&mut Edge| other.from == edge.from && other.to == edge.to && other.stored == edge.stored;
    match edges.iter_mut().find(same) {
        Some(other) if other.label != edge.label => {
            other.label.push_str(", ");
            other.label.push_str(&edge.label);
        }
        Some(_) => {}
        None => edges.push(edge),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
